;; No mode of autoreset.
;; include guest
(data (i32.const 0x43c) "\00")
