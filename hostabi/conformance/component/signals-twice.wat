;; Two signals of one name.
;; include guest
;; include slot
(data (i32.const 0x488) "\01")
