;; Beyond WebAssembly 2.0: a second memory. A host that takes more may run it; any other names what it does not take.
;; include guest
(memory $other 1)
(func (export "beyond") (result i32) (i32.load $other (i32.const 0)))
