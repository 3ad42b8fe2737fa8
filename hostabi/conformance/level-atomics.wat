;; Beyond WebAssembly 2.0: atomic operations. A host that takes more may run it; any other names what it does not take.
;; include guest
(func (export "beyond") (result i32) (i32.atomic.load (i32.const 0x1000)))
