// Package cuda is not Go: record.py measures the CUDA backend on a machine with a GPU, beside PyTorch and JAX (peer_torch.py, peer_jax.py),
// and keeps what came of it as JSON under results, where nothing is yet. The tests here hold its commands to what there is.
package cuda
