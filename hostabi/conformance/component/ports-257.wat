;; More than 256 slots.
;; include guest
;; include slot
(data (i32.const 0x41c) "\01\01\00\00")
