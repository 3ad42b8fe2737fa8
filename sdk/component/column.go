package component

import (
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// Column is where the elements of one column lie in a block: element (t, env, i) is at t*StrideT + env*StrideEnv +
// i*StrideElem of Float32 and the like. It is valid as long as its block.
type Column struct {
	Name                           string
	DType                          hostabi.DType
	Rows, Envs, Elems              int   // time rows; environments, or 1; elements of one environment
	StrideT, StrideEnv, StrideElem int   // in elements
	Shape                          []int // of the elements of one environment
	Bytes                          []byte
}

// Float32 returns the elements of a column of dtype f32, in place. Like the methods below it panics for another dtype.
func (c Column) Float32() []float32 { return elements[float32](c, hostabi.F32) }

// Float64 is the same for f64.
func (c Column) Float64() []float64 { return elements[float64](c, hostabi.F64) }

// Int32 is the same for i32.
func (c Column) Int32() []int32 { return elements[int32](c, hostabi.I32) }

// Int64 is the same for i64.
func (c Column) Int64() []int64 { return elements[int64](c, hostabi.I64) }

func (c Column) check(d hostabi.DType) {
	if c.DType != d {
		panic(fmt.Sprintf("column %s is %v, not %v", c.Name, c.DType, d))
	}
}
