import { makeInvalidFault } from '../base/fault.ts'

const form = /^([a-z][a-z0-9_-]{2,62})::([A-Za-z0-9_-]{1,63})$/

/** `app::collection`, as the public clients write it. */
export function parseRoot(root: string): { app: string; name: string } {
  const [, app, name] = form.exec(root) ?? []
  if (app === undefined || name === undefined) {
    throw makeInvalidFault('/root', 'must be app::collection, such as shop::orders')
  }
  return { app, name }
}
