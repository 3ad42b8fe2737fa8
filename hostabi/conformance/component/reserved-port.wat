;; Reserved bytes of a port that are not 0.
;; include guest
;; include slot
(data (i32.const 0x478) "\01")
