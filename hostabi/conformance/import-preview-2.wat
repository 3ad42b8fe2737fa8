;; An import of WASI preview 2.
(import "wasi:clocks/monotonic-clock@0.2.0" "now" (func (result i64)))
;; include guest
