;; More than 256 columns.
;; include guest
;; include slot
(data (i32.const 0x420) "\01\01")
