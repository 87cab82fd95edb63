/** The part of express that the peer uses; the package has no types of its own. */
declare module 'express' {
  import type { IncomingMessage, ServerResponse } from 'node:http'
  import type { Server } from 'node:net'

  export type Request = IncomingMessage & { readonly body: unknown }
  export type Response = ServerResponse & {
    readonly status: (code: number) => Response
    readonly type: (name: string) => Response
    readonly send: (body: string) => Response
  }
  export type NextFunction = (error?: unknown) => void
  export type Handler = (
    request: Request,
    response: Response,
    next: NextFunction,
  ) => Promise<void> | void
  export type Application = {
    readonly use: (handler: Handler) => void
    readonly post: (path: string, handler: Handler) => void
    readonly disable: (setting: string) => void
    readonly listen: (port: number, host: string, ready: () => void) => Server
  }
  const express: { (): Application; readonly json: () => Handler }
  // biome-ignore lint/style/noDefaultExport: that is how the package exports it
  export default express
}
