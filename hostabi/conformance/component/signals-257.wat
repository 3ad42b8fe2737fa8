;; More than 256 signals.
;; include guest
;; include slot
(data (i32.const 0x418) "\01\01")
