# Install rules, and the CMake package: find_package(caisson), caisson::caisson.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Merge the layers into one archive, so that users link one library and do not depend on the folders of src/.
# The command line (cli) and the servers are not part of the library.
get_property(layers GLOBAL PROPERTY CAISSON_LAYERS)
get_property(apart GLOBAL PROPERTY CAISSON_LAYERS_APART)
list(REMOVE_ITEM layers caisson_cli ${apart})
# Use relative names: ar scripts have no quoting, and the path of a clone may contain any character.
set(merged ${PROJECT_BINARY_DIR}/libcaisson.a)
set(merge_script "CREATE libcaisson.a.new\n")
foreach(layer IN LISTS layers)
  get_target_property(folder ${layer} BINARY_DIR)
  file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR} ${folder})
  string(APPEND merge_script "ADDLIB ${folder}/$<TARGET_FILE_NAME:${layer}>\n")
endforeach()
# Packages also run on releases with another RE2. They include the code of RE2 and libyaml in the archive, with renamed
# symbols, so that a program can link another RE2 as well.
if(CAISSON_BUNDLE)
  set(bundled ${CAISSON_YAML} ${CAISSON_RE2})
  foreach(library IN LISTS bundled)
    string(APPEND merge_script "ADDLIB ${library}\n")
  endforeach()
  set(rename_symbols COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/rename_symbols.sh ${CMAKE_NM} ${CMAKE_OBJCOPY} libcaisson.a.new ${bundled})
endif()
string(APPEND merge_script "SAVE\nEND\n")
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/libcaisson.mri CONTENT "${merge_script}")
add_custom_command(OUTPUT ${merged}
  COMMAND ${CMAKE_AR} -M < libcaisson.mri
  ${rename_symbols}
  COMMAND ${CMAKE_COMMAND} -E rename libcaisson.a.new libcaisson.a
  DEPENDS ${layers} ${PROJECT_BINARY_DIR}/libcaisson.mri WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
  COMMENT "Merging the layers into libcaisson.a" VERBATIM)
add_custom_target(caisson_library ALL DEPENDS ${merged})

get_property(CAISSON_REQUIRED_LIBRARIES GLOBAL PROPERTY CAISSON_LINKER_NAMES)
list(REMOVE_DUPLICATES CAISSON_REQUIRED_LIBRARIES)
if(CAISSON_BUNDLE)
  list(REMOVE_ITEM CAISSON_REQUIRED_LIBRARIES yaml re2)
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/caissonConfig.cmake.in ${PROJECT_BINARY_DIR}/caissonConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/caisson PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/caissonConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(FILES ${merged} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/caisson DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/caissonConfig.cmake ${PROJECT_BINARY_DIR}/caissonConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/caisson)
install(FILES README.md SECURITY.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
foreach(folder src/policy/profiles profiles)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${folder})
    install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/caisson/profiles FILES_MATCHING PATTERN "*.toml")
  endif()
endforeach()
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/packaging/apparmor)
  install(DIRECTORY packaging/apparmor DESTINATION ${CMAKE_INSTALL_DATADIR}/caisson)
endif()
install(DIRECTORY packaging/systemd DESTINATION ${CMAKE_INSTALL_DATADIR}/caisson)
install(FILES packaging/seccomp/caisson.json DESTINATION ${CMAKE_INSTALL_DATADIR}/caisson/seccomp)
install(PROGRAMS packaging/seccomp/make_profile.py DESTINATION ${CMAKE_INSTALL_DATADIR}/caisson/seccomp)
install(FILES packaging/container/Containerfile DESTINATION ${CMAKE_INSTALL_DATADIR}/caisson/container)

# The licences of the linked libraries, from the link maps and the package database.
install(CODE "
  set(made \"${PROJECT_BINARY_DIR}/generated/NOTICE\")
  execute_process(COMMAND python3 -B \"${PROJECT_SOURCE_DIR}/packaging/dist/notice.py\" \"${PROJECT_BINARY_DIR}\"
                          ${PROJECT_VERSION} \"\${made}\" ERROR_VARIABLE problem RESULT_VARIABLE status)
  if(status EQUAL 0)
    file(INSTALL \"\${made}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/doc/caisson\")
  else()
    message(WARNING \"NOTICE, the licences of the linked libraries, is not installed: \${problem}\")
  endif()")

if(TARGET caisson)
  install(TARGETS caisson RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # The binary generates its completions, its manual page and its schema.
  set(generated
    "${CMAKE_INSTALL_DATADIR}/bash-completion/completions/caisson|__completions bash"
    "${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_caisson|__completions zsh"
    "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/caisson.fish|__completions fish"
    "${CMAKE_INSTALL_MANDIR}/man1/caisson.1|__man"
    "${CMAKE_INSTALL_DATADIR}/caisson/policy.schema.json|policy schema")
  foreach(entry IN LISTS generated)
    string(REPLACE "|" ";" entry "${entry}")
    list(GET entry 0 target)
    list(GET entry 1 verb)
    get_filename_component(folder ${target} DIRECTORY)
    get_filename_component(file ${target} NAME)
    string(REPLACE " " ";" verb_words "${verb}")
    string(REPLACE ";" "\" \"" quoted_words "${verb_words}")
    install(CODE "
      set(made \"${PROJECT_BINARY_DIR}/generated/${folder}/${file}\")
      file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/generated/${folder}\")
      execute_process(COMMAND \"${PROJECT_BINARY_DIR}/caisson\" \"${quoted_words}\"
                      OUTPUT_FILE \"\${made}\" ERROR_QUIET RESULT_VARIABLE status)
      if(status EQUAL 0)
        if(IS_ABSOLUTE \"${folder}\")
          file(INSTALL \"\${made}\" DESTINATION \"${folder}\")
        else()
          file(INSTALL \"\${made}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\")
        endif()
      else()
        message(WARNING \"`caisson ${verb}` failed: ${file} is not installed\")
      endif()")
  endforeach()
endif()
