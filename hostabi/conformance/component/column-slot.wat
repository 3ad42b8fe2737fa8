;; A column of a slot that there is not.
;; include guest
;; include slot
(data (i32.const 0x550) "\04")
