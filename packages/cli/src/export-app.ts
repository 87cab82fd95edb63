import type { Command } from 'commander'
import { formatBytes } from './format-bytes.ts'
import {
  addMaintenanceOptions,
  type MaintenanceFlags,
  noteLost,
  printSourceLosses,
  refuseEmptyFolder,
  runOffline,
} from './offline-command.ts'

type ExportFlags = MaintenanceFlags & { readonly app: string; readonly to: string }

/** `tollbase export-app`: writes one application into a folder, while the service runs or not. */
export function addExportCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('export-app'))
    .description('write one application into a folder, to move it (while the service runs, too)')
    .requiredOption('--app <id>', 'the application')
    .requiredOption('--to <folder>', 'an empty folder')
    .action(async ({ app, to, ...flags }: ExportFlags) => {
      const { exportApplication } = await import(
        '@tollbase/server/operator/move/export-application'
      )
      finish(
        await runOffline(flags, {
          run: (config, progress) => {
            refuseEmptyFolder(config)
            return noteLost(exportApplication(config, { app, to }, progress))
          },
          print: ({ made_at, application, height, entries, tables, blobs, keys, key }) => {
            const bytes = tables.reduce((sum, one) => sum + one.bytes, 0)
            console.log(
              `${to}: ${app} with ${entries} entries as of ${made_at}; blocks: ${height}, ${formatBytes(bytes)}; keys: ${keys.length}; blobs: ${blobs.files}, ${formatBytes(blobs.bytes)}`,
            )
            printSourceLosses(blobs)
            if (application.status === 'active')
              console.log(
                `${app} still takes writes here; what comes from now on is not in the folder`,
              )
            console.log('its balance stays here: pay it out before you archive it')
            console.log(`at the other service: tollbase import-app --from ${to} --key ${key}`)
          },
        }),
      )
    })
}
