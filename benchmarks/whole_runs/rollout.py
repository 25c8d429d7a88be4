"""Collect a rollout with a policy that acts on the host's environment, then update the policy eight times."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.whole_runs.clock import clock

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROUNDS, ENVIRONMENTS, WIDTH = 48, 16, 256


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.actor, self.critic = nn.Linear(WIDTH, 4), nn.Linear(WIDTH, 1)

    def act(self, observed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(observed)
        choice = torch.distributions.Categorical(logits=self.actor(hidden), validate_args=False)
        return choice.sample(), self.critic(hidden).squeeze(-1)


def main(iterations: int) -> None:
    torch.manual_seed(0)
    states = np.random.default_rng(0).standard_normal((ENVIRONMENTS, 8), dtype=np.float32)
    agent = Agent().to(DEVICE)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
    for _ in range(iterations):
        clock("rollout")
        observed, rewards = [], []
        for _ in range(ROUNDS):
            now = torch.as_tensor(states, device=DEVICE)
            with torch.no_grad():
                action, _ = agent.act(now)
            choice = action.cpu().numpy()
            states = np.tanh(states + 0.1 * np.sin(np.outer(choice + 1, np.arange(8)))).astype(np.float32)
            observed.append(now)
            rewards.append(torch.as_tensor(states.sum(1), device=DEVICE))
        returns = torch.stack(rewards).flatten()
        inputs = torch.stack(observed).flatten(0, 1)
        for batch in torch.randperm(len(inputs), device=DEVICE).chunk(8):
            clock("step")
            hidden = agent.body(inputs[batch])
            value = agent.critic(hidden).squeeze(-1)
            loss = (value - returns[batch]).square().mean() - 0.01 * agent.actor(hidden).log_softmax(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
