// Package export writes trained policies as files that other programs run: observations in, actions out, with everything
// that the host does in between: preprocessing, normalisation, network, head and mask.
//
//	p := export.Policy{Network: network, Weights: weights, Masked: true, About: map[string]string{"run": "cartpole/0007"}}
//	file, err := export.Encode(export.ONNX, &p)
//	largest, err := export.Compare(export.ONNX, file, samples)       // with what the host has computed
//
// Encode and Compare are inverse in a strict sense: Compare reads the file's bytes and computes from them alone, by the
// rules of the format, so that a reader of an accepted file gets the same results.
package export
