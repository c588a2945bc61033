"""ADA-GD's projection against NumPy, on one core, in the same run.

Peers: `lstsq` in f64, and the same Gram method written in f64 NumPy. All answers must agree, and
what is left must be orthogonal to every gradient. Exits with 1 if a target is missed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import history  # noqa: E402
import numpy as np  # noqa: E402  (the thread count must be set before NumPy loads)

BINARY = sys.argv[1] if len(sys.argv) > 1 else "target/release/project"
REPEATS = 15


def lstsq(v, g):
    coefficients, *_ = np.linalg.lstsq(g.T, v, rcond=None)
    return v - g.T @ coefficients


def gram(v, g):
    lengths = np.sqrt(np.einsum("ij,ij->i", g, g))
    normal = (g @ g.T) / np.outer(lengths, lengths)
    factor = np.linalg.cholesky(normal)

    def solve(right):
        return np.linalg.solve(factor.T, np.linalg.solve(factor, right / lengths)) / lengths

    p = v - g.T @ solve(g @ v)
    return p - g.T @ solve(g @ p)


def numpy_seconds(method, v32, g32, repeats):
    """Both peers get f32 gradients, as they come from agents, and must widen them."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        p = method(v32.astype(np.float64), g32.astype(np.float64))
        times.append(time.perf_counter() - start)
    return times, p


def rust_seconds(v32, g32, repeats, *isa):
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, "gradients"), os.path.join(folder, "projected")
        np.vstack([v32[None], g32]).astype("<f4").tofile(source)
        count, dimension = g32.shape
        line = subprocess.run(
            [BINARY, source, str(dimension), str(count), str(repeats), out, *isa],
            check=True, capture_output=True, text=True,
        ).stdout
        return json.loads(line), np.fromfile(out, "<f8")


def other_isas(v32, g32, p, repeats):
    """The same on weaker instruction sets, which must give the same bits; ms by name."""
    found = {}
    for isa in ("avx2", "plain"):
        try:
            ours, other = rust_seconds(v32, g32, repeats, isa)
        except subprocess.CalledProcessError:
            continue  # this machine has no such thing
        assert other.tobytes() == p.tobytes(), f"{isa} gives another answer"
        found[isa] = float(np.median(ours["seconds"])) * 1e3
    return found


def worst_cosine(p, g):
    g = g.astype(np.float64)
    return float(np.max(np.abs(g @ p) / (np.linalg.norm(p) * np.linalg.norm(g, axis=1))))


def gradients(kind, dimension, count, rng):
    g = rng.standard_normal((count, dimension)).astype(np.float32)
    if kind == "nearly dependent":
        # The last is the first plus noise a millionth its size, as far as f32 can hold it.
        g[-1] = g[0] + np.float32(1e-6) * rng.standard_normal(dimension).astype(np.float32)
    return rng.standard_normal(dimension).astype(np.float32), g


def main():
    rng = np.random.default_rng(0)
    failed, measured = [], {}
    rows = []
    for kind, dimension, count in [
        ("random", 100_000, 10),
        ("random", 400_000, 10),
        ("nearly dependent", 400_000, 10),
        ("random", 1_600_000, 10),
        ("random", 400_000, 50),
    ]:
        v, g = gradients(kind, dimension, count, rng)
        repeats = REPEATS if dimension * count <= 4_000_000 else 5
        ours, p = rust_seconds(v, g, repeats)
        gram_times, p_gram = numpy_seconds(gram, v, g, repeats)
        lstsq_times, p_lstsq = numpy_seconds(lstsq, v, g, max(3, repeats // 3))
        cosine = worst_cosine(p, g)
        agrees = np.max(np.abs(p - p_lstsq)) / np.max(np.abs(p_lstsq))
        rust, numpy_gram, numpy_lstsq = (
            float(np.median(times)) * 1e3 for times in (ours["seconds"], gram_times, lstsq_times)
        )
        rows.append((kind, dimension, count, rust, numpy_gram, numpy_lstsq, cosine))
        print(
            f"{kind:17s} d = {dimension:>9,} |D| = {count:<3d} fedstay {rust:8.2f} ms   "
            f"NumPy Gram {numpy_gram:8.2f} ms ({numpy_gram / rust:4.1f}x)   "
            f"NumPy lstsq {numpy_lstsq:8.2f} ms ({numpy_lstsq / rust:5.1f}x)   "
            f"cosine {cosine:.0e}   rank {ours['rank']}/{ours['of']}   differs by {agrees:.0e}"
        )
        if kind == "random" and dimension == 400_000:
            for isa, ms in other_isas(v, g, p, 5).items():
                print(f"{'':17s} the same bits by {isa}: {ms:.2f} ms")
        if cosine > 1e-9:
            failed.append(f"{kind}, d = {dimension}: not orthogonal ({cosine:.1e})")
        if ours["rank"] == ours["of"] and agrees > 1e-6:
            failed.append(f"{kind}, d = {dimension}: another answer than lstsq ({agrees:.1e})")
        if (dimension, count) == (400_000, 10):
            for name, times, least in (("lstsq", numpy_lstsq, 8), ("NumPy's Gram", numpy_gram, 2)):
                if times < least * rust:
                    failed.append(f"{kind}: under {least} times {name} ({times / rust:.1f})")
                measured[f"{kind}, against {name}"] = {"value": times / rust, "target": least}
        if count == 50 and numpy_gram < rust:
            failed.append(f"{count} held: slower than NumPy's Gram ({numpy_gram / rust:.1f})")
    small, large = rows[0][3], rows[3][3]
    print(f"16 times the weights took {large / small:.1f} times the time")
    for line in failed:
        print("MISSED", line)
    history.append("projection", measured)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
