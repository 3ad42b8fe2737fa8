;; Beyond WebAssembly 2.0: exceptions. A host that takes more may run it; any other names what it does not take.
;; include guest
(tag $wrong)
(func (export "beyond") (throw $wrong))
