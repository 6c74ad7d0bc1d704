/* Browsers start no workers from files. Where the site is opened from a disk, a hidden frame does a worker's work, so
   that search works there, too. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const home = new URL(url, location.href)
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.documentElement.appendChild(frame)
      const inside = frame.contentWindow
      inside.importScripts = (...urls) => Promise.all(urls.map(source => new Promise((done, failed) => {
        const script = inside.document.createElement("script")
        script.src = new URL(source, home)
        script.onload = done
        script.onerror = failed
        inside.document.body.appendChild(script)
      })))
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside = inside
      this.ready = inside.importScripts(home)
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.inside.frameElement.remove()
    }
  }
}
