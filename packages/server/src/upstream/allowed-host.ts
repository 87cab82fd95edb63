/** A host that the operator lets upstreams name, wherever it is; any port where none is given. */
export type AllowedHost = {
  /** As URLs have it: small letters, IPv6 in brackets. */
  readonly host: string
  readonly port: number | undefined
}

/** Parses `host` or `host:port`; undefined where it is neither. */
export function parseAllowedHost(text: string): AllowedHost | undefined {
  const [, name = '', port] = /^(\[[^\]]+\]|[^\s:/@?#\\[\]]+)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (name === '' || !URL.canParse(`http://${name}`) || Number(port ?? 0) > 65_535) return undefined
  return {
    host: new URL(`http://${name}`).hostname,
    port: port === undefined ? port : Number(port),
  }
}

export function isAllowedHost(allowed: readonly AllowedHost[], url: URL): boolean {
  const port = getPort(url)
  return allowed.some((one) => one.host === url.hostname && (one.port ?? port) === port)
}

/** Returns the port of a URL of http or https, its scheme's own where it names none. */
export function getPort({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}
