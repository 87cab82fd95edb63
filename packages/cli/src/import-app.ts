import type { Command } from 'commander'
import {
  addMaintenanceOptions,
  type MaintenanceFlags,
  printReport,
  refuseEmptyFolder,
  runOffline,
} from './offline-command.ts'

type ImportFlags = MaintenanceFlags & { readonly from: string; readonly key: string }

/** `tollbase import-app`: takes in an application that another service exported. */
export function addImportCommand(program: Command, finish: (code: number) => void): void {
  addMaintenanceOptions(program.command('import-app'))
    .description('take in an application that another service exported, checking every block')
    .requiredOption('--from <folder>', 'the folder of export-app')
    .requiredOption('--key <vkey>', "its chain's key at the other service, as export-app prints it")
    .action(async ({ from, key, ...flags }: ImportFlags) => {
      const { importApplication } = await import(
        '@tollbase/server/operator/move/import-application'
      )
      finish(
        await runOffline(flags, {
          run: (config, progress) => {
            refuseEmptyFolder(config)
            return importApplication(config, { from, key }, progress)
          },
          print: (report) => {
            printReport(report)
            if (!report.equal) return
            const { app, keys } = report
            console.log(
              `${app} is here; keys that work as before: ${keys}. Start the service, which fills its views`,
            )
          },
        }),
      )
    })
}
