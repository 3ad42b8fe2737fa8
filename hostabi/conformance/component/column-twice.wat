;; A slot names a column twice.
;; include guest
;; include slot
(data (i32.const 0x584) "\9e")
