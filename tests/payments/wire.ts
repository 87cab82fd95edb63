import { connect } from 'node:net'
import type { Asked, PaymentHeader } from '../support/buyer.ts'
import type { TestService } from '../support/service.ts'

export function getPort(service: TestService): number {
  return Number(new URL(service.url).port)
}

/** Encodes a request as its bytes, its target as it is. */
export function encodeRequest({ method, path, raw }: Asked, headers: PaymentHeader): string {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'connection: close',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(raw === undefined
      ? []
      : ['content-type: application/json', `content-length: ${Buffer.byteLength(raw)}`]),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${raw ?? ''}`
}

/** Returns everything that a server replies to these bytes. */
export function exchange(service: TestService, wire: string): Promise<string> {
  return new Promise((resolve) => {
    const heard: Buffer[] = []
    const socket = connect(getPort(service), '127.0.0.1', () => socket.write(wire))
    socket.on('data', (bytes) => heard.push(bytes))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(Buffer.concat(heard).toString()))
  })
}
