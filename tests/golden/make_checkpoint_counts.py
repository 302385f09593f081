"""Writes checkpoint_counts.txt: forwards of binomial schedules, counted from the actions of two other planners.

Usage: python make_checkpoint_counts.py > checkpoint_counts.txt   (with the packages of requirements.txt)
A line is a number of slots and the counts for 1, 2, … stages; slots include that of the chain's input. The planners
must agree: checkpoint_schedules' MultistageCheckpointSchedule and pyrevolve's CRevolve.
"""

import sys

import checkpoint_schedules
from pyrevolve.schedulers import Action, CRevolve

STAGES = range(1, 201)
SLOTS = range(1, 13)


def by_checkpoint_schedules(stages, slots):
    if stages == 1:
        return 1  # it wants two stages or more
    count = 0
    for action in checkpoint_schedules.MultistageCheckpointSchedule(stages, min(slots, stages - 1), 0):
        if isinstance(action, checkpoint_schedules.Forward):
            count += action.n1 - action.n0
        if isinstance(action, checkpoint_schedules.EndReverse):
            return count


def by_pyrevolve(stages, slots):
    planner, count = CRevolve(slots, stages), 0
    while True:
        action = planner.next()
        if action.type == Action.ADVANCE:
            count += action.capo - action.old_capo
        elif action.type in (Action.LASTFW, Action.REVERSE):
            count += 1
        elif action.type == Action.TERMINATE:
            return count


def main():
    for slots in SLOTS:
        counts = [by_pyrevolve(stages, slots) for stages in STAGES]
        others = [by_checkpoint_schedules(stages, slots) for stages in STAGES]
        for stages, one, other in zip(STAGES, counts, others):
            if one != other:
                sys.exit(f"{stages} stages, {slots} slots: {one} and {other} forwards")
        print(slots, *counts)


if __name__ == "__main__":
    main()
