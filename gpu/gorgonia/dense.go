package gorgonia

// Linear returns x·weight + bias, shape [rows, out], for x [rows, in], weight [in, out] and bias [1, out].
func Linear(x, weight, bias *Node) (*Node, error) {
	return caught(func() *Node { return add(matMul(x, weight), repeat(bias, x.Shape()[0])) })
}

// Linear applies the dense layer with the parameters name.weight and name.bias.
func (p Params) Linear(name string, x *Node) (*Node, error) {
	weight, bias, err := p.weightAndBias(name)
	if err != nil {
		return nil, err
	}
	return Linear(x, weight, bias)
}

func (p Params) weightAndBias(name string) (weight, bias *Node, err error) {
	weight, err = p.Node(name + ".weight")
	if err != nil {
		return nil, nil, err
	}
	bias, err = p.Node(name + ".bias")
	return weight, bias, err
}
