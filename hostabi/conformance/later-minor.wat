;; A higher minor version runs: what it adds is in the features.
;; include guest
(data (i32.const 0x406) "\07")
