// Package cuda is not Go: record.py measures the CUDA backend on a machine with a GPU, next to PyTorch and JAX (peer_torch.py,
// peer_jax.py), and keeps the results as JSON under results, where nothing is yet. The tests here check that its commands exist.
package cuda
