package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// poly evaluates a polynomial at t by Horner's method, highest coefficient first.
func (s isa) poly(p, t reg.VecPhysical, coefficients ...float64) {
	VBROADCASTSS(float(coefficients[0]), p)
	for _, c := range coefficients[1:] {
		s.pick(VFMADD213PS, VFMADD213PS_BCST)(float(c), t, p)
	}
}

// clamp limits x to ±bound; tmp is clobbered. A NaN stays one: it is the second source of both operations.
func (s isa) clamp(x, tmp reg.VecPhysical, low, high float64) {
	VBROADCASTSS(float(high), tmp)
	VMINPS(x, tmp, x)
	VBROADCASTSS(float(low), tmp)
	VMAXPS(x, tmp, x)
}

// tanh replaces x by its hyperbolic tangent: Eigen's rational approximation, within 4e-7.
func (s isa) tanh(x, t, p, q reg.VecPhysical) {
	s.clamp(x, t, -7.90531110763549805, 7.90531110763549805)
	VMULPS(x, x, t)
	s.poly(p, t, -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
		1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)
	VMULPS(x, p, p)
	s.poly(q, t, 1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
	VDIVPS(q, p, x)
}

// normal sets p to the standard normal distribution function of x, by Eigen's rational approximation of erf, within 2e-7.
func (s isa) normal(x, p, z, t, q reg.VecPhysical) {
	s.pick(VMULPS, VMULPS_BCST)(float(0.70710678118654752), x, z)
	s.clamp(z, t, -4, 4)
	VMULPS(z, z, t)
	s.poly(p, t, -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)
	VMULPS(z, p, p)
	s.poly(q, t, -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
		-1.42647390514189e-02)
	VDIVPS(q, p, p)
	VBROADCASTSS(float(0.5), t)
	VFMADD213PS(t, t, p)
}

// sigmoid replaces x by its logistic function, given halves; three of r are clobbered.
func (s isa) sigmoid(x, half reg.VecPhysical, r []reg.VecPhysical) {
	VMULPS(half, x, x)
	s.tanh(x, r[0], r[1], r[2])
	VFMADD213PS(half, half, x)
}

// exp replaces x by its exponential, Cephes' expf: exactly 1 at 0, exactly 0 below -87.3. under is a mask
// register of 512-bit sets, else a vector.
func (s isa) exp(x, t, p, under reg.VecPhysical) {
	VBROADCASTSS(float(-87.3), t)
	if s.wide() {
		VCMPPS(Imm(0x15), t, x, reg.K1) // not less, unordered is true: NaN stays
	} else {
		VCMPPS(Imm(0x15), t, x, under)
	}
	s.clamp(x, t, -87.3, 88.3)
	s.pick(VMULPS, VMULPS_BCST)(float(1.44269504088896341), x, t)
	if s.wide() {
		VRNDSCALEPS(Imm(8), t, t)
	} else {
		VROUNDPS(Imm(8), t, t)
	}
	subtract := s.pick(VFNMADD231PS, VFNMADD231PS_BCST)
	subtract(float(0.693359375), t, x)
	subtract(float(-2.12194440e-4), t, x)
	s.poly(p, x, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
		5.0000001201e-1, 1, 1)
	VCVTPS2DQ(t, t)
	s.pick(VPADDD, VPADDD_BCST)(bits(127), t, t)
	VPSLLD(Imm(23), t, t)
	if s.wide() {
		VMULPS_Z(t, p, reg.K1, x)
		return
	}
	VMULPS(t, p, p)
	VANDPS(under, p, x)
}

// log replaces x, positive and normal, by its logarithm: Cephes' logf. Only for AVX2.
func (s isa) log(x, e, z, p, t reg.VecPhysical) {
	VPSRLD(Imm(23), x, e)
	VPSUBD(bits(127), e, e)
	VCVTDQ2PS(e, e)
	VANDPS(bits(0x7fffff), x, x)
	VORPS(bits(0x3f800000), x, x) // mantissa in [1, 2)
	VBROADCASTSS(float(1.41421356), t)
	VCMPPS(Imm(1), x, t, t) // √2 < mantissa
	VMULPS(float(0.5), x, p)
	VBLENDVPS(t, p, x, x)
	VANDPS(float(1), t, t)
	VADDPS(t, e, e)
	VSUBPS(float(1), x, x)
	VMULPS(x, x, z)
	s.poly(p, x, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	VMULPS(x, z, t)
	VMULPS(t, p, p)
	VFMADD231PS(float(-2.12194440e-4), e, p)
	VFNMADD231PS(float(0.5), z, p)
	VADDPS(p, x, x)
	VFMADD231PS(float(0.693359375), e, x)
}
