;; Beyond WebAssembly 2.0: relaxed SIMD. A host that takes more may run it; any other names what it does not take.
;; include guest
(func (export "beyond") (param v128 v128 v128) (result v128) (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))
