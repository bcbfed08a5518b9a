"""PyTorch: the accuracy and the latency of a small convolutional network on a new dataset.

    pip install 'metatpe[gp]' scikit-learn      # the extra gp brings torch
    python examples/pytorch.py

The images are scikit-learn's digits, 8 x 8 pixels. The past studies tuned the same network on the
digits 0 to 4, and on all digits upside down with noise. The new dataset has all ten digits.
Accuracy is maximised, and the time to classify one image is minimised, in milliseconds. The
network is trained on a GPU if there is one. Every search is run with and without past studies.
"""

from __future__ import annotations

import argparse
import time

import optuna
import torch
from _gain import print_gain
from optuna.samplers import BaseSampler, RandomSampler
from sklearn.datasets import load_digits
from torch import nn

from metatpe import TransferSampler, transfer_history

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Data = tuple[torch.Tensor, torch.Tensor]  # images (n, 1, 8, 8) and labels (n,)


def digits() -> Data:
    """Return the digits in random order, always the same one."""
    bunch = load_digits()
    order = torch.randperm(len(bunch.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(bunch.images, dtype=torch.float32)[:, None] / 16.0
    return images[order].to(DEVICE), torch.tensor(bunch.target)[order].to(DEVICE)


def zero_to_four(data: Data) -> Data:
    images, labels = data
    return images[labels < 5], labels[labels < 5]


def noisy_upside_down(data: Data) -> Data:
    images, labels = data
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(1))
    return images.flip(2) + 0.3 * noise.to(DEVICE), labels


def network(trial: optuna.Trial) -> nn.Sequential:
    """Return one or two convolutions and a dense layer, with the trial's sizes."""
    channels, layers, kernel = 1, [], trial.suggest_categorical("kernel", [1, 3, 5])
    for i in range(trial.suggest_int("convolutions", 1, 2)):
        width = trial.suggest_int(f"channels_{i}", 2, 32, log=True)
        layers += [nn.Conv2d(channels, width, kernel, padding="same"), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    hidden = trial.suggest_int("hidden", 8, 128, log=True)
    dropout = trial.suggest_float("dropout", 0.0, 0.6)
    layers += [nn.Flatten(), nn.LazyLinear(hidden), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(hidden, 10)).to(DEVICE)


class Objective:
    """The validation accuracy and the latency in milliseconds on one dataset."""

    def __init__(self, data: Data, n_epochs: int) -> None:
        self.images, self.labels = data
        self.n_train = int(0.7 * len(self.labels))
        self.n_epochs = n_epochs

    def __call__(self, trial: optuna.Trial) -> tuple[float, float]:
        torch.manual_seed(0)
        model = network(trial)
        model(self.images[:2])  # the lazy layer learns its size
        self.train(model, trial)
        model.eval()
        with torch.inference_mode():
            answers = model(self.images[self.n_train :]).argmax(dim=1)
            accuracy = (answers == self.labels[self.n_train :]).float().mean().item()
            return accuracy, latency(model, self.images[:1])

    def train(self, model: nn.Module, trial: optuna.Trial) -> None:
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=trial.suggest_float("lr", 1e-4, 1e-1, log=True),
            weight_decay=trial.suggest_float("weight_decay", 1e-5, 1e-1, log=True),
        )
        batch_size = 2 ** trial.suggest_int("log2_batch_size", 4, 8)
        for _ in range(self.n_epochs):
            for batch in torch.randperm(self.n_train, device=DEVICE).split(batch_size):
                loss = nn.functional.cross_entropy(model(self.images[batch]), self.labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def latency(model: nn.Module, image: torch.Tensor) -> float:
    """Return milliseconds for one image, the best of 50: other work only ever adds to it."""
    seconds = []
    for _ in range(50):
        start = time.perf_counter()
        model(image).cpu()  # the copy waits for a GPU
        seconds.append(time.perf_counter() - start)
    return min(seconds) * 1e3


def search(objective: Objective, n_trials: int, sampler: BaseSampler, name: str) -> optuna.Study:
    """Tune the network."""
    study = optuna.create_study(
        study_name=name,
        directions=["maximize", "minimize"],
        sampler=sampler,
    )
    study.optimize(objective, n_trials=n_trials)
    return study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="of each new study")
    parser.add_argument("--past-trials", type=int, default=30, help="of each past study")
    parser.add_argument("--epochs", type=int, default=3, help="of each training")
    parser.add_argument(
        "--seeds", type=int, default=3, help="searches with and without past studies"
    )
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    torch.set_num_threads(1)  # the networks are too small for more
    print(f"training on {DEVICE}")

    past_data = {
        "zero to four": zero_to_four(digits()),
        "noisy, upside down": noisy_upside_down(digits()),
    }
    sources = []
    for name, data in past_data.items():
        print(f"past study: {name}, {args.past_trials} trials", flush=True)
        objective = Objective(data, args.epochs)
        sources.append(search(objective, args.past_trials, RandomSampler(seed=0), name))

    objective = Objective(digits(), args.epochs)
    with_past, without = [], []
    for seed in range(args.seeds):
        print(f"new study: all digits, seed {seed}, with and without past studies", flush=True)
        sampler = TransferSampler(sources, seed=seed)
        with_past.append(search(objective, args.trials, sampler, f"with {seed}"))
        sampler = TransferSampler(seed=seed)
        without.append(search(objective, args.trials, sampler, f"without {seed}"))

    print("\nfinal weights of the past studies:")
    print(" ", [r.weights for r in transfer_history(with_past[0]) if r.weights][-1:])
    print("accuracy and milliseconds an image on the front of the first study with past studies:")
    for trial in sorted(with_past[0].best_trials, key=lambda t: t.values):
        print(f"  {trial.values[0]:.3f}  {trial.values[1]:.3f}  {trial.params}")
    print_gain(with_past, without)


if __name__ == "__main__":
    main()
