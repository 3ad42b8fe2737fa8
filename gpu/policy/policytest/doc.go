// Package policytest holds backends to the policy package's reference: one suite for all of them.
//
//	func TestBackend(t *testing.T) {
//		policytest.TestBackend(t, cpu.New(), policytest.Float32)
//	}
//
// It makes its own datasets; it does not test how fast a backend is.
package policytest
