;; A head shorter than version 1 has it.
;; include guest
(data (i32.const 0x400) "\7c")
