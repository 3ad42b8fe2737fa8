;; A head shorter than version 1 has it.
;; include guest
;; include slot
(data (i32.const 0x400) "\5c")
