"""The most memory it takes to load and deal the 60,000 images of CIFAR-10: under 250 MB.

    python bench/memory.py
"""

import common


def main():
    answer = common.output("memory")
    print(f"{answer['images']:,} images loaded and dealt to ten agents: {answer['peak']:.0f} MB")
    assert answer["images"] == 60_000
    targets = common.Targets()
    targets.check("250 MB over the peak", 250 / answer["peak"], 1)
    targets.finish()


if __name__ == "__main__":
    main()
