;; Two slots of one name.
;; include guest
;; include slot
(data (i32.const 0x4d8) "4")
