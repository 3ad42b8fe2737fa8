package kern

import "math"

// The vector kernels evaluate the same approximations; tests hold both to float64.

// tanh is Eigen's rational approximation, within 4e-7.
func tanh(x float32) float32 {
	x = min(max(x, -7.90531110763549805), 7.90531110763549805)
	t := x * x
	p := float32(-2.76076847742355e-16)
	p = float32(p*t) + 2.00018790482477e-13
	p = float32(p*t) + -8.60467152213735e-11
	p = float32(p*t) + 5.12229709037114e-08
	p = float32(p*t) + 1.48572235717979e-05
	p = float32(p*t) + 6.37261928875436e-04
	p = float32(p*t) + 4.89352455891786e-03
	q := float32(1.19825839466702e-06)
	q = float32(q*t) + 1.18534705686654e-04
	q = float32(q*t) + 2.26843463243900e-03
	q = float32(q*t) + 4.89352518554385e-03
	return x * p / q
}

// normal is the standard normal distribution function, by Eigen's rational approximation of erf, within 2e-7.
func normal(x float32) float32 {
	x = min(max(float32(x*0.70710678118654752), -4), 4)
	t := x * x
	p := float32(-2.72614225801306e-10)
	p = float32(p*t) + 2.77068142495902e-08
	p = float32(p*t) + -2.10102402082508e-06
	p = float32(p*t) + -5.69250639462346e-05
	p = float32(p*t) + -7.34990630326855e-04
	p = float32(p*t) + -2.95459980854025e-03
	p = float32(p*t) + -1.60960333262415e-02
	q := float32(-1.45660718464996e-05)
	q = float32(q*t) + -2.13374055278905e-04
	q = float32(q*t) + -1.68282697438203e-03
	q = float32(q*t) + -7.37332916720468e-03
	q = float32(q*t) + -1.42647390514189e-02
	return float32(0.5*(x*p/q)) + 0.5
}

// density is that of the standard normal distribution.
func density(x float32) float32 { return 0.39894228040143268 * exp(-0.5*float32(x*x)) }

// exp is Cephes' expf: exactly 1 at 0, exactly 0 below -87.3.
func exp(x float32) float32 {
	if x < -87.3 {
		return 0
	}
	x = min(x, 88.3)
	n := float32(math.RoundToEven(float64(x * 1.44269504088896341)))
	x -= float32(n * 0.693359375)
	x -= float32(n * -2.12194440e-4)
	p := float32(1.9875691500e-4)
	p = float32(p*x) + 1.3981999507e-3
	p = float32(p*x) + 8.3334519073e-3
	p = float32(p*x) + 4.1665795894e-2
	p = float32(p*x) + 1.6666665459e-1
	p = float32(p*x) + 5.0000001201e-1
	p = float32(p*x) + 1
	p = float32(p*x) + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// log is Cephes' logf for positive normal numbers.
func log(x float32) float32 {
	bits := math.Float32bits(x)
	e := float32(int32(bits>>23) - 127)
	m := math.Float32frombits(bits&0x7fffff | 0x3f800000)
	if m > 1.41421356 {
		m *= 0.5
		e++
	}
	m--
	z := m * m
	p := float32(7.0376836292e-2)
	p = float32(p*m) + -1.1514610310e-1
	p = float32(p*m) + 1.1676998740e-1
	p = float32(p*m) + -1.2420140846e-1
	p = float32(p*m) + 1.4249322787e-1
	p = float32(p*m) + -1.6668057665e-1
	p = float32(p*m) + 2.0000714765e-1
	p = float32(p*m) + -2.4999993993e-1
	p = float32(p*m) + 3.3333331174e-1
	p = float32(float32(m*z) * p)
	p += float32(e * -2.12194440e-4)
	p -= float32(0.5 * z)
	return m + p + float32(e*0.693359375)
}
