package component

import (
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// Column is a column of a block: element (t, env, i) is at t*StrideT + env*StrideEnv + i*StrideElem of Float32 and
// the like. It is valid as long as its block.
type Column struct {
	Name                           string
	DType                          hostabi.DType
	Rows, Envs, Elems              int   // time rows; environments, or 1; elements of one environment
	StrideT, StrideEnv, StrideElem int   // in elements
	Shape                          []int // of the elements of one environment
	Bytes                          []byte
}

// Row returns the elements of one environment in a time row, in place, as a column of one row and one environment. It panics where
// there is none.
func (c Column) Row(t, env int) Column {
	if t < 0 || t >= c.Rows || env < 0 || env >= c.Envs {
		panic(fmt.Sprintf("column %s has %d rows of %d environments, and not [%d, %d]", c.Name, c.Rows, c.Envs, t, env))
	}
	size := c.DType.Bytes()
	first := (t*c.StrideT + env*c.StrideEnv) * size
	c.Bytes = c.Bytes[first : first+((c.Elems-1)*c.StrideElem+1)*size]
	c.Rows, c.Envs = 1, 1
	return c
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
