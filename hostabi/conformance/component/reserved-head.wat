;; Reserved bytes of the head that are not 0.
;; include guest
;; include slot
(data (i32.const 0x44c) "\01")
