;; A rank that there is no room for.
;; include guest
(data (i32.const 0x507) "\07")
