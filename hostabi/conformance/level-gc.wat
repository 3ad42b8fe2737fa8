;; Beyond WebAssembly 2.0: types that are collected. A host that takes more may run it; any other names what it does not take.
;; include guest
(type $point (struct (field i32)))
(func (export "beyond") (result i32) (struct.get $point 0 (struct.new_default $point)))
