package plan

import "sync"

// Tensor is a tensor of parameters in a backend's vector. The backend sets At.
type Tensor struct {
	At, Size int             // where it begins in the vector, and how much of that it takes
	Count    int             // elements of the canonical tensor
	Index    func(i int) int // where element i of the canonical tensor lies, from At on
}

// Flat returns a tensor of n elements that lie in the vector as in the canonical one.
func Flat(n int) Tensor { return Tensor{Size: n, Count: n, Index: func(i int) int { return i }} }

// Places returns how many elements the canonical vector has, and what finds where each of them lies in the backend's, given all
// tensors in the canonical order. place looks when it is first called: who only asks whether a network can be computed never does.
func Places(tensors []*Tensor) (count int, place func() []int32) {
	for _, t := range tensors {
		count += t.Count
	}
	return count, sync.OnceValue(func() []int32 {
		places := make([]int32, 0, count)
		for _, t := range tensors {
			for i := range t.Count {
				places = append(places, int32(t.At+t.Index(i)))
			}
		}
		return places
	})
}
