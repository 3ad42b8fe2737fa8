// A site that is opened from the disk may start no Worker, and its search is one: here the script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      window.addEventListener("message", (event) => {
        if (event.source !== this.frame.contentWindow) return;
        const copy = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      });
      this.post = this.frame.contentWindow.postMessage.bind(this.frame.contentWindow); // before the script has its own
      const inside = this.frame.contentDocument;
      inside.open();
      inside.write(`<body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...scripts) => scripts.reduce((before, src) => before.then(() => new Promise((done) => {
          const script = document.body.appendChild(document.createElement("script"));
          script.onload = done;
          script.src = src;
        })), Promise.resolve());
      <\/script></body>`);
      inside.close();
      this.ready = new Promise((done) => {
        const tag = inside.createElement("script");
        tag.onload = done;
        tag.src = script;
        inside.body.appendChild(tag);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.post(data, "*"));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
