;; Reserved bytes of a column that are not 0.
;; include guest
;; include slot
(data (i32.const 0x55d) "\01")
