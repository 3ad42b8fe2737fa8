;; A mode of autoreset that version 1 does not have.
;; include guest
(data (i32.const 0x43c) "\0f")
