import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { errors } from '@tollbase/contract/errors'
import { limits } from '@tollbase/contract/limits'
import type { World } from '../base/world.ts'

const idBytes = 12

/**
 * Answers input that never became a request (it is no HTTP, its head is too large, it did not arrive in time) in
 * the form of every other error, and closes the connection, as the bytes that follow cannot be interpreted.
 */
export function refuseBrokenRequests(world: World): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    const { code, message } = toRefusal(error)
    // A client that reset the connection cannot be told, nor one that is in the midst of another answer.
    const isReset = 'code' in error && error.code === 'ECONNRESET'
    if (isReset || !socket.writable || findResponse(socket)?.headersSent === true) {
      socket.destroy()
      return
    }
    const { status } = errors[code]
    const request_id = world.randomBytes(idBytes).toString('hex')
    const body = JSON.stringify({ error: message, code, request_id })
    const head = [
      `HTTP/1.1 ${status} ${code}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      'access-control-allow-origin: *',
      'cache-control: no-store',
      'connection: close',
      'x-content-type-options: nosniff',
      `x-request-id: ${request_id}`,
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
  }
}

/** Finds the answer that goes over a connection now. Node keeps it there, and judges by it where we do not. */
function findResponse(socket: Socket): ServerResponse | null | undefined {
  return (socket as Socket & { readonly _httpMessage?: ServerResponse | null })._httpMessage
}

function toRefusal(error: Error) {
  const cause = 'code' in error ? error.code : undefined
  if (cause === 'HPE_HEADER_OVERFLOW') {
    return {
      code: 'HEADERS_TOO_LARGE',
      message: `Address and headers together are larger than ${limits.headerBytesMax} bytes`,
    } as const
  }
  if (cause === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return {
      code: 'REQUEST_TIMEOUT',
      message: `The request did not arrive within ${limits.requestTimeoutMs / 1000} seconds`,
    } as const
  }
  return { code: 'VALIDATION_FAILED', message: 'The request is not HTTP that can be read' } as const
}
