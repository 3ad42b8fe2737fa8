;; Beyond WebAssembly 2.0: references of a function's type. A host that takes more may run it; any other names what it does not take.
;; include guest
(type $nothing (func))
(func (export "beyond") (param (ref $nothing)) (call_ref $nothing (local.get 0)))
