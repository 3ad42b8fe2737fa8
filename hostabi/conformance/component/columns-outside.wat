;; Records that end outside the manifest.
;; include guest
;; include slot
(data (i32.const 0x420) "\1e")
