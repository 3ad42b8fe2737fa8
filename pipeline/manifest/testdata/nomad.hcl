# nomad job run THIS, where clients have docker and a host volume "rlhost" that all of them share, with the pipeline file in it.
# The image: podman build -t registry.example/rlhost:1 . in rlhost's sources.
job "cart-pole" {
  type = "batch"

  group "run" {
    volume "work" {
      type   = "host"
      source = "rlhost"
    }
    network {
      port "join" {
        static = 4222
      }
    }
    task "rlhost" {
      driver = "docker"
      config {
        image        = "registry.example/rlhost:1"
        args         = ["train","pipeline.toml","--listen","0.0.0.0:4222"]
        network_mode = "host"
      }
      volume_mount {
        volume      = "work"
        destination = "/work"
      }
      resources {
        cores = 8
      }
    }
  }

  group "hosts" {
    count = 3
    volume "work" {
      type   = "host"
      source = "rlhost"
    }
    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }
    task "rlhost" {
      driver = "docker"
      config {
        image        = "registry.example/rlhost:1"
        args         = ["join","--token-file","runs/Cart_Pole/*/join.token","--wait","10m"]
        network_mode = "host"
      }
      volume_mount {
        volume      = "work"
        destination = "/work"
      }
      resources {
        cores = 8
      }
    }
  }
}
