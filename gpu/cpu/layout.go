package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

// layout says where the parameters of a network lie in the backend's own vector. There, weights are in panels of
// 16 columns, as the product's kernel reads and writes them, so that neither a forward pass nor a gradient ever
// packs anything. Columns are padded to whole panels; the padding is 0, and a gradient of 0 keeps it there.
type layout struct {
	net        policy.Network
	encoders   int // 2, or 1 with a shared trunk
	layers     []layer
	actorHead  head
	criticHead head
	size       int     // of the vector, a multiple of kern.Panel
	width      int     // padded outputs of one encoder: what a head reads
	place      []int32 // of every canonical parameter in the vector
	actor      []span  // of the vector, where actor and critic share nothing; else empty
	critic     []span
}

// layer is one dense layer of every encoder.
type layer struct {
	in, out int // in is true, out padded
	real    int // outputs before padding
	row     int // elements between the rows of one encoder's activations
	weight  int // encoder e, element (i, 16p+j): weight + e*in*out + p*in*16 + i*16 + j
	bias    int // encoder e, output j: bias + e*out + j
}

// head is a linear head, stored transposed: output a reads weight[a*width : (a+1)*width].
type head struct {
	outputs, encoder int
	weight, bias     int
}

func pad(n int) int { return (n + kern.Panel - 1) / kern.Panel * kern.Panel }

// apart spreads rows over the sets of the first-level cache: with an odd number of cache lines between them, a
// column of rows does not compete for a few sets.
func apart(n int) int { return pad(n) | kern.Panel }

func newLayout(n policy.Network) *layout {
	l := &layout{net: n, encoders: 2}
	if n.ShareTrunk {
		l.encoders = 1
	}
	end := 0
	take := func(n int) int {
		at := end
		end = pad(end + n)
		return at
	}
	in := n.Obs
	l.width = pad(in)
	for _, width := range n.Hidden {
		out := pad(width)
		weight := take(l.encoders * in * out)
		l.layers = append(l.layers, layer{in: in, out: out, real: width, row: apart(out), weight: weight,
			bias: take(l.encoders * out)})
		in, l.width = width, out
	}
	l.actorHead = head{outputs: n.Actions, weight: take(n.Actions * l.width), bias: take(n.Actions)}
	l.criticHead = head{outputs: 1, encoder: l.encoders - 1, weight: take(l.width), bias: take(1)}
	l.size = end
	if l.encoders == 2 || len(l.layers) == 0 {
		l.actor, l.critic = l.spans(&l.actorHead), l.spans(&l.criticHead)
	}
	l.place = l.places()
	return l
}

// spans lists where the parameters of a head and its encoder lie.
func (l *layout) spans(h *head) []span {
	var spans []span
	add := func(at, n int) { spans = append(spans, span{at, at + pad(n)}) }
	for _, y := range l.layers {
		add(y.weight+h.encoder*y.in*y.out, y.in*y.out)
		add(y.bias+h.encoder*y.out, y.out)
	}
	add(h.weight, h.outputs*l.width)
	add(h.bias, h.outputs)
	return spans
}

// places lists where every canonical parameter lies.
func (l *layout) places() []int32 {
	place := make([]int32, 0, l.net.ParamCount())
	add := func(at int) { place = append(place, int32(at)) }
	encoder := func(e int) {
		for _, y := range l.layers {
			for i := range y.in {
				for j := range y.real {
					add(y.weight + e*y.in*y.out + j/kern.Panel*y.in*kern.Panel + i*kern.Panel + j%kern.Panel)
				}
			}
			for j := range y.real {
				add(y.bias + e*y.out + j)
			}
		}
	}
	heads := func(h head) {
		in := l.net.Obs
		if len(l.layers) > 0 {
			in = l.layers[len(l.layers)-1].real
		}
		for i := range in {
			for a := range h.outputs {
				add(h.weight + a*l.width + i)
			}
		}
		for a := range h.outputs {
			add(h.bias + a)
		}
	}
	encoder(0)
	heads(l.actorHead)
	if l.encoders == 2 {
		encoder(1)
	}
	heads(l.criticHead)
	return place
}

// importParams copies a canonical vector to the backend's.
func (l *layout) importParams(own, canonical []float32) {
	clear(own)
	for i, at := range l.place {
		own[at] = canonical[i]
	}
}

// exportParams copies the backend's vector to a canonical one.
func (l *layout) exportParams(canonical, own []float32) {
	for i, at := range l.place {
		canonical[i] = own[at]
	}
}
