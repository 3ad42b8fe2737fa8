;; Bindings shorter than version 1 has them.
;; include guest
(data (i32.const 0x41a) "\20")
